//! Random Markdown answers made from a seed. Their words are numbered, so that a screen shows if
//! one is missing or moved.

/// Returns a generator of numbers below a bound that is deterministic for a seed.
pub(crate) fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(1_442_695_040_888_963_407);
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap_or_default() % below.max(1)
    }
}

/// A generated answer.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) source: String,
    /// Number of its words, `w1` to `wN`.
    pub(crate) words: usize,
    /// First and last word of each table, because a table may show its words cell by cell.
    pub(crate) tables: Vec<(usize, usize)>,
}

impl Answer {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let mut maker = Maker {
            number: numbers(seed),
            words: 0,
            tables: Vec::new(),
        };
        let mut source = String::new();
        for _ in 0..=maker.number(6) {
            for line in maker.block(3) {
                source.push_str(&line);
                source.push('\n');
            }
            for _ in 0..maker.pick(&[1, 1, 1, 1, 0, 2, 3]) {
                source.push('\n');
            }
        }
        if source.trim().is_empty() {
            source = maker.word() + "\n";
        }
        if maker.number(2) == 0 {
            source.truncate(source.trim_end().len());
        }
        Self {
            source,
            words: maker.words,
            tables: maker.tables,
        }
    }

    /// Returns the first difference between the answer's words and those on a screen.
    pub(crate) fn differs_from(&self, seen: &str) -> Option<String> {
        let mut words = words(seen);
        for (first, last) in &self.tables {
            let runs = words
                .chunk_by_mut(|a, b| (first..=last).contains(&a) == (first..=last).contains(&b));
            runs.for_each(|run| {
                if (first..=last).contains(&&run[0]) {
                    run.sort_unstable();
                }
            });
        }
        for (at, expected) in (1..=self.words).enumerate() {
            match words.get(at) {
                Some(word) if *word == expected => {}
                Some(word) => return Some(format!("w{word} stands where w{expected} is expected")),
                None => return Some(format!("w{expected} is not there")),
            }
        }
        if let Some(word) = words.get(self.words) {
            return Some(format!("w{word} follows the last word"));
        }
        MARKS.iter().find_map(|mark| {
            let (expected, there) = (
                self.source.matches(*mark).count(),
                seen.matches(*mark).count(),
            );
            (expected != there)
                .then(|| format!("{there} of {mark:?}, where {expected} are expected"))
        })
    }
}

/// Returns the numbers of the words in a text, in order.
fn words(text: &str) -> Vec<usize> {
    let mut words = Vec::new();
    for part in text.split('w').skip(1) {
        let digits = part
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(part.len());
        words.extend(part[..digits].parse::<usize>());
    }
    words
}

/// Characters counted in addition to the words: long words, wide ones, and grapheme clusters.
const MARKS: &[char] = &['x', '牛', '奶', '🥛', '💻', 'é'];

struct Maker<N> {
    number: N,
    words: usize,
    tables: Vec<(usize, usize)>,
}

impl<N: FnMut(usize) -> usize> Maker<N> {
    fn number(&mut self, below: usize) -> usize {
        (self.number)(below)
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.number(all.len())]
    }

    fn word(&mut self) -> String {
        self.words += 1;
        format!("w{}", self.words)
    }

    /// Returns one word or a few, as they occur in a line.
    fn span(&mut self) -> String {
        match self.number(24) {
            0 => format!("**{} {}**", self.word(), self.word()),
            1 => format!("*{}*", self.word()),
            2 => format!("`{} {}`", self.word(), self.word()),
            3 => format!("[{}](https://e.org/{})", self.word(), self.word()),
            4 => format!("~~{}~~", self.word()),
            5 => format!("{}牛奶牛奶", self.word()),
            6 => format!("🥛 {}", self.word()),
            7 => format!("👩\u{200d}💻 {}", self.word()),
            8 => format!("é{}", self.word()),
            9 => format!("\\* {} &amp; <b>{}</b>", self.word(), self.word()),
            10 => "x".repeat(1 + self.number(70)),
            11 => format!("{} \u{2014} ({}).", self.word(), self.word()),
            12 => format!("{}  {}", self.word(), self.word()),
            13 => format!("**{}", self.word()),
            14 => format!("![{}](https://e.org/{}.png)", self.word(), self.word()),
            _ => self.word(),
        }
    }

    fn spans(&mut self, most: usize) -> String {
        let spans: Vec<String> = (0..=self.number(most)).map(|_| self.span()).collect();
        spans.join(" ")
    }

    fn paragraph(&mut self) -> Vec<String> {
        let lines = self.pick(&[1, 1, 1, 2, 3]);
        (0..lines)
            .map(|_| self.spans(24) + self.pick(&["", "", "", " ", "  "]))
            .collect()
    }

    fn block(&mut self, depth: usize) -> Vec<String> {
        match self.number(if depth == 0 { 9 } else { 16 }) {
            0..=2 => self.paragraph(),
            3 => vec![format!(
                "{} {}",
                "#".repeat(1 + self.number(6)),
                self.spans(8)
            )],
            4 => self.code(),
            5 => vec![self.pick(&["---", "***", "- - -"]).to_owned()],
            6 => self.table(),
            7 => match self.number(5) {
                0 => vec!["<div>".to_owned(), self.spans(4), "</div>".to_owned()],
                1 => vec![format!("<!-- {} -->", self.word())],
                2 => {
                    let label = self.words;
                    vec![format!(
                        "[ref{label}]: https://e.org/{} '{}'",
                        self.word(),
                        self.word()
                    )]
                }
                3 => (0..=self.number(3))
                    .map(|_| format!("    {}", self.spans(10)))
                    .collect(),
                _ => vec![self.spans(10), self.pick(&["===", "---"]).to_owned()],
            },
            8 => vec![String::new(), String::new()],
            9 | 10 => self.quote(depth),
            _ => self.list(depth),
        }
    }

    fn code(&mut self) -> Vec<String> {
        let fence = self.pick(&["```", "~~~", "````"]);
        let info = self.pick(&["", "rust", "sh", "python", "json", "toml"]);
        let mut lines = vec![format!("{fence}{info}")];
        for _ in 0..self.number(6) {
            lines.push(match self.number(6) {
                0 => String::new(),
                1 => format!("# {}", self.spans(4)),
                2 => format!(
                    "\tlet {} = \"{}\"; // {}",
                    self.word(),
                    self.word(),
                    self.word()
                ),
                3 => format!("- {}", self.word()),
                4 => format!("    {}", "x".repeat(60 + self.number(150))),
                _ => format!("/* {} */ fn {}()", self.word(), self.word()),
            });
        }
        if self.number(12) > 0 {
            lines.push(fence.to_owned());
        }
        lines
    }

    fn table(&mut self) -> Vec<String> {
        let first = self.words + 1;
        let columns = 1 + self.number(6);
        let row = |maker: &mut Self| {
            let cells: Vec<String> = (0..columns)
                .map(|_| match maker.number(5) {
                    0 => maker.spans(6).replace('|', "/"),
                    1 => String::new(),
                    _ => maker.word(),
                })
                .collect();
            format!("| {} |", cells.join(" | "))
        };
        let mut lines = vec![row(self)];
        let rule: Vec<&str> = (0..columns)
            .map(|_| self.pick(&["---", ":--", "--:", ":-:"]))
            .collect();
        lines.push(format!("|{}|", rule.join("|")));
        for _ in 0..self.number(5) {
            lines.push(row(self));
        }
        if self.words >= first {
            self.tables.push((first, self.words));
        }
        lines
    }

    fn quote(&mut self, depth: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..=self.number(2) {
            lines.extend(self.block(depth - 1));
            if self.number(2) == 0 {
                lines.push(String::new());
            }
        }
        lines
            .iter()
            .map(|line| format!("> {line}").trim_end().to_owned())
            .collect()
    }

    fn list(&mut self, depth: usize) -> Vec<String> {
        let (kind, loose) = (self.number(5), self.number(3) == 0);
        let mut lines: Vec<String> = Vec::new();
        for item in 0..=self.number(4) {
            let marker = match kind {
                0 => format!("{}. ", item + 1),
                1 => format!("{}) ", item + 8),
                2 => "* ".to_owned(),
                3 => "- [ ] ".to_owned(),
                _ => "- ".to_owned(),
            };
            let mut inner = match self.number(9) {
                0 => Vec::new(),
                _ => vec![self.spans(9)],
            };
            if self.number(4) == 0 {
                if self.number(2) == 0 {
                    inner.push(String::new());
                }
                inner.extend(self.block(depth - 1));
            }
            let blanks = " ".repeat(if kind == 3 { 2 } else { marker.len() });
            for (number, line) in inner.iter().enumerate() {
                let before = if number == 0 { &marker } else { &blanks };
                lines.push(format!("{before}{line}").trim_end().to_owned());
            }
            if inner.is_empty() {
                lines.push(marker.trim_end().to_owned());
            }
            if loose {
                lines.push(String::new());
            }
        }
        lines
    }
}
