//! Probabilities of the actions that a message asks for.

use std::fmt;

/// A kind of action that a message to an assistant may ask for.
///
/// The kinds are those of the tools that an assistant usually has, whatever the tools are called,
/// and of the answers without a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActionKind {
    /// Create an entry, such as a task.
    Create,
    /// Mark an entry as done.
    Complete,
    /// Take an entry off for good.
    Delete,
    /// Change the text of an entry.
    Reword,
    /// Show entries, all or some of them.
    List,
    /// Keep a statement about the person or their world.
    Remember,
    /// Answer a question from such statements.
    Recall,
    /// Write into a diary.
    Log,
    /// Drop such a statement.
    Forget,
    /// Reply in words: greetings, thanks, statements that change nothing.
    Reply,
    /// Decline what the assistant is not for.
    Decline,
    /// Ask back, because too little is said.
    Ask,
}

impl ActionKind {
    /// Every kind, in the order of a classifier's rows.
    pub const ALL: [Self; 12] = [
        Self::Create,
        Self::Complete,
        Self::Delete,
        Self::Reword,
        Self::List,
        Self::Remember,
        Self::Recall,
        Self::Log,
        Self::Forget,
        Self::Reply,
        Self::Decline,
        Self::Ask,
    ];

    /// Returns true for kinds that change something.
    #[must_use]
    pub fn is_change(self) -> bool {
        !matches!(
            self,
            Self::List | Self::Recall | Self::Reply | Self::Decline | Self::Ask
        )
    }
}

/// A language that the person may write in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Language {
    /// English, which other languages are answered in.
    #[default]
    English,
    /// `de`, of Germany, Austria and Switzerland.
    German,
    /// `fr`, of any country.
    French,
    /// `es`, of Spain and America.
    Spanish,
    /// `pt`, of Brazil and Portugal.
    Portuguese,
}

impl Language {
    /// Every language, in the order of a classifier's rows.
    pub const ALL: [Self; 5] = [
        Self::English,
        Self::German,
        Self::French,
        Self::Spanish,
        Self::Portuguese,
    ];

    /// Returns the two letters of the language (ISO 639-1).
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::French => "fr",
            Self::Spanish => "es",
            Self::Portuguese => "pt",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// A message, with what was said just before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Utterance<'a> {
    /// The text that the person wrote.
    pub message: &'a str,
    /// The assistant's reply before it, if there was one.
    pub before: Option<&'a str>,
    /// The person's message before that reply.
    pub earlier: Option<&'a str>,
}

/// The probability of every kind of action for one message, and the language of the message.
///
/// A message may ask for several actions, so each probability stands alone: they do not add up to
/// one.
///
/// # Examples
///
/// ```
/// use adjutant_core::{ActionKind, ActionScores, Language};
///
/// let scores = ActionScores::new(Language::German).with(ActionKind::Create, 0.9);
/// assert_eq!(scores.of(ActionKind::Create), 0.9);
/// assert_eq!(scores.of(ActionKind::Delete), 0.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActionScores {
    probabilities: [f32; ActionKind::ALL.len()],
    language: Language,
}

impl ActionScores {
    /// Creates scores in which nothing is likely.
    #[must_use]
    pub fn new(language: Language) -> Self {
        Self {
            probabilities: [0.0; ActionKind::ALL.len()],
            language,
        }
    }

    /// Creates scores from the outputs of linear classifiers: the log-odds of each of
    /// [`ActionKind::ALL`], then a number for each of [`Language::ALL`], of which the largest counts.
    /// An output that is missing is not likely.
    #[must_use]
    pub fn from_outputs(outputs: &[f32]) -> Self {
        let languages = outputs.iter().skip(ActionKind::ALL.len());
        let language = languages
            .zip(Language::ALL)
            .max_by(|(a, _), (b, _)| a.total_cmp(b))
            .map(|(_, language)| language)
            .unwrap_or_default();
        outputs
            .iter()
            .zip(ActionKind::ALL)
            .fold(Self::new(language), |scores, (output, kind)| {
                scores.with(kind, 1.0 / (1.0 + (-output).exp()))
            })
    }

    /// Returns the scores of two classifiers together: for each kind the mean of their log-odds, in
    /// which `other` counts by `share`, from 0 to 1. The language is that of `self`.
    #[must_use]
    pub fn mixed_with(&self, other: &Self, share: f32) -> Self {
        let log_odds = |probability: f32| {
            let probability = probability.clamp(1e-4, 1.0 - 1e-4);
            (probability / (1.0 - probability)).ln()
        };
        ActionKind::ALL
            .into_iter()
            .fold(Self::new(self.language), |mixed, kind| {
                let own = (1.0 - share) * log_odds(self.of(kind));
                let output = own + share * log_odds(other.of(kind));
                mixed.with(kind, 1.0 / (1.0 + (-output).exp()))
            })
    }

    /// Sets the probability of one kind, from 0 to 1.
    #[must_use]
    pub fn with(mut self, kind: ActionKind, probability: f32) -> Self {
        self.probabilities[kind as usize] = probability.clamp(0.0, 1.0);
        self
    }

    /// Returns the probability of one kind, from 0 to 1.
    #[must_use]
    pub fn of(&self, kind: ActionKind) -> f32 {
        self.probabilities[kind as usize]
    }

    /// Returns the likeliest kind, the first of several.
    #[must_use]
    pub fn likeliest(&self) -> ActionKind {
        ActionKind::ALL
            .into_iter()
            .rev()
            .max_by(|a, b| self.of(*a).total_cmp(&self.of(*b)))
            .unwrap_or(ActionKind::Ask)
    }

    /// Returns the language of the message.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }
}
