//! Findings with the line that they are about, as compilers show them.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use crate::finding::{Finding, Severity, Sources};

/// The most bytes of a line that an excerpt shows; a longer one gets its place alone.
const MAX_LINE: usize = 400;

/// One finding after the other, each with its excerpt, a blank line between two, no final line end.
pub fn render(findings: &[Finding], sources: &Sources, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() }.decor_style(DecorStyle::Ascii);
    findings.iter().map(|finding| one(finding, sources, &renderer)).collect::<Vec<_>>().join("\n\n")
}

fn one(finding: &Finding, sources: &Sources, renderer: &Renderer) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let message = if finding.path.is_empty() {
        finding.message.clone()
    } else {
        format!("{}: {}", finding.path, finding.message)
    };
    let title = level.primary_title(message);
    let place = &finding.place;
    let group = match excerpt(finding, sources) {
        Some((line, span)) => title.element(
            Snippet::source(line)
                .line_start(place.line)
                .path(place.file.as_str())
                .annotation(AnnotationKind::Primary.span(span)),
        ),
        None => title.element(Origin::path(place.file.as_str()).line(place.line).char_column(place.column)),
    };
    renderer.render(&[group])
}

/// The first line of what the finding is about, and its span in it.
fn excerpt<'s>(finding: &Finding, sources: &'s Sources) -> Option<(&'s str, std::ops::Range<usize>)> {
    let text = sources.text(&finding.place.file)?;
    let start = finding.span.start.min(text.len());
    let first = text.get(..start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text[first..].split('\n').next()?.trim_end_matches('\r');
    if line.trim().is_empty() || line.len() > MAX_LINE {
        return None;
    }
    let from = (start - first).min(line.len());
    let to = (finding.span.end.max(start) - first).min(line.len());
    let to = if line.is_char_boundary(to) { to } else { line.len() };
    Some((line, from..to.max(from)))
}
