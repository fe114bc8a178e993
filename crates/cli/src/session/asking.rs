//! Permissions and questions on a terminal: the words that ask, and what an answer means.

use beeuni_protocol::event::{Question, Reply};

/// The words that ask for a permission. `arguments` are the call's, whole: nobody should allow what they cannot see.
pub(crate) fn permission(tool: &str, patterns: &[String], arguments: &str) -> String {
    let what: Vec<&str> = patterns.iter().map(String::as_str).filter(|pattern| *pattern != "*").collect();
    let what = if what.is_empty() { String::new() } else { format!(": {}", what.join(", ")) };
    format!(
        "May it use {tool}{what}?\n  {arguments}\n[y]es, [N]o, [a]lways (whatever this rule asks about, until the session \
         ends), or say what it should know: "
    )
}

/// What an answer to a permission means. No answer at all means no; other words mean no, with these words.
pub(crate) fn permission_reply(answer: Option<&str>) -> Reply {
    let Some(answer) = answer else {
        return Reply::Reject { message: String::new() };
    };
    match answer.trim().to_lowercase().as_str() {
        "y" | "yes" => Reply::Once,
        "a" | "always" => Reply::Always,
        "" | "n" | "no" => Reply::Reject { message: String::new() },
        _ => Reply::Reject { message: answer.trim().to_owned() },
    }
}

/// The words that ask a question.
pub(crate) fn question(question: &Question) -> String {
    let mut words = format!("{}\n", question.question);
    for (number, choice) in question.options.iter().enumerate() {
        let about =
            if choice.description.is_empty() { String::new() } else { format!(": {}", choice.description) };
        words.push_str(&format!("  {}. {}{about}\n", number + 1, choice.label));
    }
    words.push_str(match (question.options.is_empty(), question.multiple) {
        (true, _) => "Your answer: ",
        (false, false) => "Your answer (a number, or your own words): ",
        (false, true) => "Your answer (numbers with commas, or your own words): ",
    });
    words
}

/// What an answer to a question means: numbers pick choices, anything else is taken as it is.
pub(crate) fn question_reply(question: &Question, answer: &str) -> Vec<String> {
    let answer = answer.trim();
    let pick = |text: &str| -> Option<String> {
        let number: usize = text.trim().parse().ok()?;
        Some(question.options.get(number.checked_sub(1)?)?.label.clone())
    };
    let parts: Vec<&str> = if question.multiple { answer.split(',').collect() } else { vec![answer] };
    match parts.iter().map(|part| pick(part)).collect::<Option<Vec<_>>>() {
        Some(labels) => labels,
        None => vec![answer.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeuni_protocol::event::Choice;

    #[test]
    fn answers_to_permissions() {
        let reject = |message: &str| Reply::Reject { message: message.to_owned() };
        for (answer, expected) in [
            (Some("y"), Reply::Once),
            (Some(" YES \n"), Reply::Once),
            (Some("always"), Reply::Always),
            (Some("n"), reject("")),
            (Some(""), reject("")),
            (Some("use the staging key"), reject("use the staging key")),
            (None, reject("")),
        ] {
            assert_eq!(permission_reply(answer), expected, "{answer:?}");
        }
        assert_eq!(
            permission("bash", &["rm -r x".into()], r#"{"command":"rm -r x"}"#),
            "May it use bash: rm -r x?\n  {\"command\":\"rm -r x\"}\n[y]es, [N]o, [a]lways (whatever this rule asks about, \
             until the session ends), or say what it should know: "
        );
        assert!(permission("show", &["*".into()], "{}").starts_with("May it use show?\n  {}\n"));
    }

    #[test]
    fn answers_to_questions() {
        let choice = |label: &str| Choice { label: label.into(), description: String::new() };
        let one = Question {
            question: "Which?".into(),
            header: String::new(),
            options: vec![choice("red"), choice("blue")],
            multiple: false,
        };
        let many = Question { multiple: true, ..one.clone() };
        for (question, answer, expected) in [
            (&one, "2", vec!["blue"]),
            (&one, "3", vec!["3"]),
            (&one, "0", vec!["0"]),
            (&one, "green", vec!["green"]),
            (&one, "1,2", vec!["1,2"]),
            (&many, "1, 2", vec!["red", "blue"]),
            (&many, "1, green", vec!["1, green"]),
        ] {
            assert_eq!(question_reply(question, answer), expected, "{answer}");
        }
    }
}
