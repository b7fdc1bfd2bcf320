//! The price table: dated prices of models, which can be overridden. A price that is not in it is
//! unknown, never zero.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use adjutant_core::{Cost, ModelId, Usage};
use jiff::civil::Date;
use serde::Deserialize;

/// The built-in table. Each row has the date and source of its prices; prices that could not be
/// confirmed at the source are left out.
const BUILTIN: &str = include_str!("prices.json");

/// A table of model prices. The first row that applies to a call decides.
///
/// Deserialized from any format of serde; as TOML:
///
/// ```toml
/// [[prices]]
/// providers = ["openai", "openai-chat"]
/// models = ["gpt-5", "gpt-5-{date}"] # `{date}`: 20260131 or 2026-01-31; `*`: anything
/// input = 1.25                       # US dollars per million tokens, as all prices here
/// cached_input = 0.125               # read from a cache
/// cache_write = 1.5625               # written to one
/// output = 10.0                      # thinking included
/// input_tokens_max = 272000          # optional: only for calls with at most so many input tokens
/// until = "2026-12-31"               # optional: the last day it holds
/// as_of = "2026-11-01"               # optional: when it was looked up
/// source = "https://..."             # optional: and where
/// note = "an alias of ..."           # optional: why the row is there
/// ```
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(from = "Rows")]
pub struct Prices {
    prices: Vec<Price>,
    /// The indexes of each provider's rows, in order.
    of_provider: HashMap<String, Vec<usize>>,
}

/// The table in its serialized form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    #[serde(default)]
    prices: Vec<Price>,
}

impl From<Rows> for Prices {
    fn from(Rows { prices }: Rows) -> Self {
        let mut of_provider: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, price) in prices.iter().enumerate() {
            for provider in &price.providers {
                of_provider.entry(provider.clone()).or_default().push(at);
            }
        }
        Self {
            prices,
            of_provider,
        }
    }
}

/// A row of the table: the prices of some models.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    providers: Vec<String>,
    models: Vec<String>,
    input: UsdPerMillion,
    cached_input: Option<UsdPerMillion>,
    cache_write: Option<UsdPerMillion>,
    output: UsdPerMillion,
    input_tokens_max: Option<u64>,
    until: Option<Date>,
    as_of: Option<Date>,
    source: Option<String>,
    note: Option<String>,
}

/// US dollars per million tokens, from 0 to a million.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
struct UsdPerMillion(f64);

impl TryFrom<f64> for UsdPerMillion {
    type Error = String;
    fn try_from(usd: f64) -> Result<Self, String> {
        let fits = (0.0..=1e6).contains(&usd);
        if fits {
            Ok(Self(usd))
        } else {
            Err(format!("a price must be between 0 and 1000000, not {usd}"))
        }
    }
}

impl Prices {
    /// Returns the built-in prices of this version.
    #[must_use]
    pub fn builtin() -> Self {
        (*shared_builtin()).clone()
    }

    /// Returns the table with the rows of `others` in front, which therefore take precedence.
    #[must_use]
    pub fn overridden_by(self, others: Self) -> Self {
        Rows {
            prices: others.prices.into_iter().chain(self.prices).collect(),
        }
        .into()
    }

    /// Returns the cost of a model call on a day. `None`: it is unknown, because the model, or a
    /// kind of token that was used, has no price, or the provider did not report the tokens.
    ///
    /// # Examples
    ///
    /// ```
    /// use adjutant_core::{ModelId, Usage};
    /// use adjutant_runtime::Prices;
    ///
    /// let table = r#"{"prices": [
    ///     {"providers": ["acme"], "models": ["fast-*"], "input": 1.0, "output": 4.0}
    /// ]}"#;
    /// let prices: Prices = serde_json::from_str(table)?;
    /// let usage = Usage {
    ///     input_tokens: Some(1_000_000),
    ///     output_tokens: Some(500_000),
    ///     ..Usage::default()
    /// };
    /// let cost = prices.cost(&ModelId::new("acme", "fast-2")?, &usage, "2027-01-01".parse()?);
    /// assert_eq!(cost.map(|cost| cost.usd()), Some(3.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cost(&self, model: &ModelId, usage: &Usage, on: Date) -> Option<Cost> {
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let rows = self.of_provider.get(model.provider.as_str())?;
        let price = rows
            .iter()
            .filter_map(|at| self.prices.get(*at))
            .find(|price| {
                price.is_for(&model.name)
                    && price.input_tokens_max.is_none_or(|max| input <= max)
                    && price.until.is_none_or(|until| on <= until)
            })?;
        let (cached, written) = (
            usage.cached_tokens.unwrap_or(0),
            usage.cache_written_tokens.unwrap_or(0),
        );
        // `input_tokens` includes cached and written tokens, which have prices of their own.
        let plain = input.saturating_sub(cached).saturating_sub(written);
        let usd = cost_of_tokens(plain, Some(price.input))?
            + cost_of_tokens(cached, price.cached_input)?
            + cost_of_tokens(written, price.cache_write)?
            + cost_of_tokens(output, Some(price.output))?;
        Cost::from_usd(usd)
    }
}

/// Returns the built-in table, which is parsed once.
pub(crate) fn shared_builtin() -> Arc<Prices> {
    static SHARED: LazyLock<Arc<Prices>> = LazyLock::new(|| {
        #[expect(
            clippy::expect_used,
            reason = "our own file; a test reads every row of it"
        )]
        Arc::new(serde_json::from_str(BUILTIN).expect("the table of prices"))
    });
    Arc::clone(&SHARED)
}

/// Returns the cost of tokens of one kind. Zero tokens cost nothing even without a price.
fn cost_of_tokens(tokens: u64, price: Option<UsdPerMillion>) -> Option<f64> {
    if tokens == 0 {
        Some(0.0)
    } else {
        Some(tokens as f64 * price?.0 / 1e6)
    }
}

impl Price {
    fn is_for(&self, model: &str) -> bool {
        self.models.iter().any(|pattern| matches(pattern, model))
    }
}

/// Placeholder for the date of a model's release, as vendors append it to names. Versions begin with
/// the same digits, so `*` in its place would match the next version too.
const DATE: &str = "{date}";

/// Returns true if a name matches a pattern in which `*` stands for any characters, or none, and
/// [`DATE`] for a date.
fn matches(pattern: &str, name: &str) -> bool {
    let special = [pattern.find('*'), pattern.find(DATE)];
    let Some(at) = special.into_iter().flatten().min() else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(&pattern[..at]) else {
        return false;
    };
    match pattern[at..].strip_prefix(DATE) {
        Some(after) => [8, 10].into_iter().any(|length| {
            name.split_at_checked(length)
                .is_some_and(|(date, rest)| is_date(date) && matches(after, rest))
        }),
        None => name
            .char_indices()
            .map(|(at, _)| at)
            .chain([name.len()])
            .any(|start| matches(&pattern[at + 1..], &name[start..])),
    }
}

/// Returns true for a date written as `20260131` or `2026-01-31`.
fn is_date(text: &str) -> bool {
    let is_form = match text.len() {
        8 => text.bytes().all(|byte| byte.is_ascii_digit()),
        _ => text.starts_with(|first: char| first.is_ascii_digit()),
    };
    is_form && text.parse::<Date>().is_ok()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn model(provider: &str, name: &str) -> ModelId {
        ModelId::new(provider, name).unwrap()
    }

    fn usage(input: u64, cached: u64, written: u64, output: u64) -> Usage {
        Usage {
            input_tokens: Some(input),
            cached_tokens: Some(cached),
            cache_written_tokens: Some(written),
            output_tokens: Some(output),
            thinking_tokens: Some(output),
        }
    }

    /// Shown as a person reads it.
    fn cost(provider: &str, name: &str, usage: Usage) -> String {
        let cost = Prices::builtin().cost(&model(provider, name), &usage, date(2026, 11, 22));
        cost.map_or_else(|| "$?".to_owned(), |cost| cost.to_string())
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        // 1 million each at 5, 0.5, 6.25 and 25 dollars.
        let all = usage(3_000_000, 1_000_000, 1_000_000, 1_000_000);
        assert_eq!(cost("anthropic", "claude-opus-4-5-20251101", all), "$36.75");
        assert_eq!(
            cost(
                "gemini",
                "gemini-3.8-flash",
                usage(1_000_000, 500_000, 0, 0)
            ),
            "$0.41"
        );
        assert_eq!(
            cost("gemini", "gemini-3.8-flash", usage(812, 0, 0, 41)),
            "$0.00076"
        );
    }

    #[test]
    fn long_requests_have_their_own_price() {
        assert_eq!(
            cost("gemini", "gemini-2.5-pro", usage(200_000, 0, 0, 0)),
            "$0.25"
        );
        assert_eq!(
            cost("gemini", "gemini-2.5-pro", usage(200_001, 0, 0, 0)),
            "$0.50"
        );
        // That price is known to be another one, and not known.
        assert_eq!(cost("openai", "gpt-6.1-sol", usage(272_001, 0, 0, 0)), "$?");
    }

    #[test]
    fn an_alias_costs_what_its_model_does() {
        let some = usage(100_000, 10_000, 10_000, 1_000);
        assert_eq!(
            cost("openai", "gpt-5.6", some),
            cost("openai", "gpt-5.6-sol", some)
        );
        assert_eq!(cost("openai", "gpt-5.6", usage(1_000_000, 0, 0, 0)), "$?");
        assert_eq!(cost("openai", "gpt-5.6", usage(200_000, 0, 0, 0)), "$0.80");
    }

    #[test]
    fn what_is_not_in_the_table_is_unknown_and_never_free() {
        let some = usage(10, 0, 0, 10);
        for (provider, name) in [
            ("gemini", "gemini-9-flash"),
            ("groq", "gpt-5"),
            ("openai", "gpt-5-pro"),
            ("openai", "gpt-5x"),
            // Later versions, and numbers that are no dates.
            ("anthropic", "claude-fable-5-2"),
            ("anthropic", "claude-opus-5-2"),
            ("anthropic", "claude-sonnet-5-2-20270101"),
            ("anthropic", "claude-opus-5-20269999"),
            ("openai", "gpt-5-2"),
            ("openai", "gpt-5-2025"),
            ("openai", "gpt-5-2025-08-07-preview"),
        ] {
            assert_eq!(cost(provider, name, some), "$?", "{provider}/{name}");
        }
        assert_eq!(cost("openai", "gpt-5-2025-08-07", some), "$0.00011");
        assert_eq!(cost("openai", "gpt-5-20250807", some), "$0.00011");
        // A kind of token without a price, and tokens that were not counted.
        assert_eq!(
            cost("gemini", "gemini-2.5-flash-lite", usage(10, 5, 0, 0)),
            "$?"
        );
        assert_eq!(
            cost(
                "openai",
                "gpt-5",
                Usage {
                    output_tokens: None,
                    ..some
                }
            ),
            "$?"
        );
    }

    #[test]
    fn a_price_ends_on_its_last_day() {
        let (flash, some) = (
            model("gemini", "gemini-3.8-flash"),
            usage(1_000_000, 0, 0, 0),
        );
        let on = |day| {
            Prices::builtin()
                .cost(&flash, &some, day)
                .unwrap()
                .to_string()
        };
        assert_eq!(
            [on(date(2026, 12, 31)), on(date(2027, 1, 1))],
            ["$0.75", "$1.50"]
        );
    }

    #[test]
    fn the_user_has_the_last_word() {
        let own: Prices = serde_json::from_str(
            r#"{"prices": [{"providers": ["openai", "azure"], "models": ["gpt-5", "my-*-deployment"], "input": 1, "output": 2}]}"#,
        )
        .unwrap();
        let prices = Prices::builtin().overridden_by(own);
        let cost = |provider, name| {
            prices.cost(
                &model(provider, name),
                &usage(1_000_000, 0, 0, 1_000_000),
                date(2026, 11, 22),
            )
        };
        for (provider, name, usd) in [
            ("openai", "gpt-5", Some(3.0)),
            ("azure", "my-fast-deployment", Some(3.0)),
            ("azure", "your-deployment", None),
            ("openai", "gpt-5-mini", Some(2.25)),
        ] {
            assert_eq!(
                cost(provider, name).map(Cost::usd),
                usd,
                "{provider}/{name}"
            );
        }
    }

    #[test]
    fn a_table_that_cannot_be_meant_is_refused() {
        for (row, words) in [
            (r#""input": -1, "output": 1"#, "between 0 and"),
            (r#""input": 1"#, "missing field `output`"),
            (
                r#""input": 1, "output": 1, "inptu_tokens_max": 1"#,
                "unknown field",
            ),
            (
                r#""input": 1, "output": 1, "until": "soon""#,
                "four digit integer as year",
            ),
        ] {
            let text = format!(r#"{{"prices": [{{"providers": ["a"], "models": ["b"], {row}}}]}}"#);
            let error = serde_json::from_str::<Prices>(&text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn every_built_in_row_is_dated_has_a_source_and_can_be_reached() {
        let rows = Prices::builtin().prices;
        assert!(rows.len() > 40);
        for (at, row) in rows.iter().enumerate() {
            assert!(
                row.as_of.is_some()
                    && row
                        .source
                        .as_ref()
                        .is_some_and(|url| url.starts_with("https://"))
            );
            for name in &row.models {
                assert!(!name.contains('*'), "{name} would match later versions");
                let model = name.replace(DATE, "2026-01-01");
                assert!(row.is_for(&model), "{name}");
                let hidden = rows[..at].iter().any(|other| {
                    other.providers.contains(&row.providers[0])
                        && other.is_for(&model)
                        && other.input_tokens_max.is_none()
                        && other.until.is_none()
                });
                assert!(!hidden, "{name} is priced before");
            }
        }
    }
}
