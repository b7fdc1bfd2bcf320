//! Numbers of a text, in digits and in words.

/// Number words of English and German, with their values. Larger ones are written in digits.
const WORDS: [(&str, f64); 58] = [
    ("zero", 0.0),
    ("one", 1.0),
    ("two", 2.0),
    ("three", 3.0),
    ("four", 4.0),
    ("five", 5.0),
    ("six", 6.0),
    ("seven", 7.0),
    ("eight", 8.0),
    ("nine", 9.0),
    ("ten", 10.0),
    ("eleven", 11.0),
    ("twelve", 12.0),
    ("dozen", 12.0),
    ("thirteen", 13.0),
    ("fourteen", 14.0),
    ("fifteen", 15.0),
    ("sixteen", 16.0),
    ("seventeen", 17.0),
    ("eighteen", 18.0),
    ("nineteen", 19.0),
    ("twenty", 20.0),
    ("thirty", 30.0),
    ("forty", 40.0),
    ("fifty", 50.0),
    ("sixty", 60.0),
    ("seventy", 70.0),
    ("eighty", 80.0),
    ("ninety", 90.0),
    ("hundred", 100.0),
    ("thousand", 1000.0),
    ("null", 0.0),
    ("ein", 1.0),
    ("eine", 1.0),
    ("einen", 1.0),
    ("zwei", 2.0),
    ("drei", 3.0),
    ("vier", 4.0),
    ("fünf", 5.0),
    ("sechs", 6.0),
    ("sieben", 7.0),
    ("acht", 8.0),
    ("neun", 9.0),
    ("zehn", 10.0),
    ("elf", 11.0),
    ("zwölf", 12.0),
    ("dutzend", 12.0),
    ("zwanzig", 20.0),
    ("dreißig", 30.0),
    ("vierzig", 40.0),
    ("fünfzig", 50.0),
    ("sechzig", 60.0),
    ("siebzig", 70.0),
    ("achtzig", 80.0),
    ("neunzig", 90.0),
    ("hundert", 100.0),
    ("tausend", 1000.0),
    ("couple", 2.0),
];

/// Returns the numbers of a text in lower case. Digits with a separator that could be read in two
/// ways, such as `1.500`, give both numbers.
pub(super) fn of_text(text: &str) -> Vec<f64> {
    let mut numbers = Vec::new();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'');
    for run in text.split(|c: char| !is_part(c)) {
        let run = run.trim_matches(|c: char| !c.is_ascii_digit());
        if !run.is_empty() {
            numbers.extend(readings(run));
        }
    }
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let value = WORDS.iter().find(|(known, _)| *known == word);
        numbers.extend(value.map(|(_, value)| *value));
    }
    numbers
}

/// Returns the numbers that digits with separators can mean: the last separator divides the whole
/// from its fraction, or all of them group digits.
fn readings(run: &str) -> Vec<f64> {
    let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
    let mut numbers: Vec<f64> = Vec::new();
    match run.rsplit_once(['.', ',']) {
        None => numbers.extend(digits(run).parse::<f64>()),
        Some((whole, fraction)) => {
            numbers.extend(format!("{}.{}", digits(whole), digits(fraction)).parse::<f64>());
            if fraction.len() == 3 {
                numbers.extend(digits(run).parse::<f64>());
            }
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::of_text;

    #[test]
    fn digits_and_words_are_numbers() {
        for (text, numbers) in [
            ("pay 12.50 for two", vec![12.5, 2.0]),
            ("$1,000.50", vec![1000.5]),
            ("1.000,50 €", vec![1000.5]),
            ("1.500 people", vec![1.5, 1500.0]),
            ("at 10, not 11.", vec![10.0, 11.0]),
            ("zwölf und fünf", vec![12.0, 5.0]),
            ("none", vec![]),
        ] {
            assert_eq!(of_text(text), numbers, "{text}");
        }
    }
}
