//! Takes a shell line apart into its simple commands, so that permission rules can look at each.

/// Words that begin something other than a simple command.
const KEYWORDS: [&str; 22] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
    "function", "in", "time", "coproc", "!", "{", "}", "[[", "]]",
];

/// The simple commands of a line, in order, each with single blanks between its words and its quotes as written.
///
/// `None` for a line that cannot be taken apart with certainty: command or process substitution, backticks, subshells,
/// groups, compound commands, here-documents, a redirection without a command, unclosed quotes, or a misplaced operator.
/// An empty line, or one with a comment only, has no commands.
pub fn simple_commands(line: &str) -> Option<Vec<String>> {
    let mut split = Split { commands: Vec::new(), command: String::new(), blank: false, open: false };
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\0' | '`' | '(' | ')' => return None,
            '\\' => match chars.next()? {
                '\n' => {}
                escaped => split.push(&['\\', escaped]),
            },
            '\'' => {
                split.push(&['\'']);
                loop {
                    let inner = chars.next()?;
                    split.command.push(inner);
                    if inner == '\'' {
                        break;
                    }
                }
            }
            '"' => {
                split.push(&['"']);
                loop {
                    let inner = chars.next()?;
                    match inner {
                        '`' | '\0' => return None,
                        '$' if chars.peek() == Some(&'(') => return None,
                        '\\' => {
                            split.command.push('\\');
                            split.command.push(chars.next()?);
                            continue;
                        }
                        _ => split.command.push(inner),
                    }
                    if inner == '"' {
                        break;
                    }
                }
            }
            '$' if matches!(chars.peek(), Some('(' | '\'' | '"')) => return None,
            '#' if split.at_word() => {
                while chars.peek().is_some_and(|next| *next != '\n') {
                    chars.next();
                }
            }
            ' ' | '\t' => split.blank = true,
            '\n' => split.newline()?,
            ';' => {
                if chars.peek() == Some(&';') || chars.peek() == Some(&'&') {
                    return None;
                }
                split.end(false)?;
            }
            '&' if chars.peek() == Some(&'>') => split.push(&['&']),
            '&' if chars.next_if_eq(&'&').is_some() => split.end(true)?,
            '&' => split.end(false)?,
            '|' => {
                let _ = chars.next_if_eq(&'|').is_some() || chars.next_if_eq(&'&').is_some();
                split.end(true)?;
            }
            '<' if chars.peek() == Some(&'<') => return None,
            '<' | '>' => {
                split.push(&[c]);
                // `>&1`, `<&3`, `>|file` and `>>file` belong to the redirection; `>(` is refused by its parenthesis.
                if let Some(next) = chars.next_if(|next| "&>|".contains(*next)) {
                    split.command.push(next);
                }
            }
            other => split.push(&[other]),
        }
    }
    split.finish()
}

struct Split {
    commands: Vec<String>,
    command: String,
    /// A blank stands between the last word and the next.
    blank: bool,
    /// `&&`, `||` or `|` waits for its second command.
    open: bool,
}

impl Split {
    fn push(&mut self, text: &[char]) {
        if self.blank && !self.command.is_empty() {
            self.command.push(' ');
        }
        self.blank = false;
        self.command.extend(text);
    }

    fn at_word(&self) -> bool {
        self.blank || self.command.is_empty()
    }

    /// Takes the command that was read, if it is a simple one.
    fn take(&mut self) -> Option<()> {
        let command = std::mem::take(&mut self.command);
        self.blank = false;
        self.open = false;
        let first = command.split(' ').next().unwrap_or("");
        let redirection = first.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['<', '>'])
            || first.starts_with("&>");
        if redirection || KEYWORDS.contains(&first) {
            return None;
        }
        self.commands.push(command);
        Some(())
    }

    fn end(&mut self, open: bool) -> Option<()> {
        if self.command.is_empty() {
            return None;
        }
        self.take()?;
        self.open = open;
        Some(())
    }

    fn newline(&mut self) -> Option<()> {
        if self.command.is_empty() { Some(()) } else { self.take() }
    }

    fn finish(mut self) -> Option<Vec<String>> {
        self.newline()?;
        (!self.open).then_some(self.commands)
    }
}
