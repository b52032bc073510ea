//! JSON, as far as the benches write it.
//!
//! `benches/peers` includes this file, so it must not use `crate` paths.

/// Values of a list, a line each.
pub fn listed(all: impl Iterator<Item = String>) -> String {
    all.collect::<Vec<_>>().join(",\n")
}

/// A figure, or `null` if there is none.
pub fn number(figure: Option<f64>) -> String {
    figure.filter(|it| it.is_finite()).map_or("null".into(), |figure| format!("{figure:.3}"))
}

/// The version of koel. The benches, which write it, have versions of their own.
pub fn koel_version() -> String {
    let package = include_str!("../../../Cargo.toml");
    let version = package.lines().find_map(|line| line.strip_prefix("version = "));
    version.expect("a package has a version").into()
}

/// A text without control characters.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for it in text.chars().filter(|it| !it.is_control()) {
        if matches!(it, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(it);
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_a_text() {
        let version = koel_version();
        assert_eq!(version, quoted(version.trim_matches('"')));
    }

    #[test]
    fn texts_are_escaped_and_figures_are_finite() {
        assert_eq!(quoted("a \"b\" \\ c\n"), r#""a \"b\" \\ c""#);
        assert_eq!([Some(1.5), Some(f64::NAN), None].map(number), ["1.500", "null", "null"]);
    }
}
