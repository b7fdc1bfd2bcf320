//! Ablation of the word lists: the figures of `decide` without each of them.

use std::path::Path;

use adjutant_weak::WeakTools;

use crate::decide::{Evaluation, Verdict};

/// Prints the number of sentences of each verdict, and by how many it changes without each list.
///
/// # Errors
/// Those of [`Evaluation`]; a lexicon that is no JSON.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let evaluation = Evaluation::new(root, None)?;
    let lists = WeakTools::word_lists().map_err(|error| error.to_string())?;
    let verdicts = |weak: &WeakTools| -> Result<Vec<Verdict>, String> {
        let judged = evaluation.judged(weak)?.into_iter();
        Ok(judged.map(|(verdict, _)| verdict).collect())
    };
    let count = |verdicts: &[Verdict], verdict: Verdict| {
        let same = verdicts.iter().filter(|other| **other == verdict);
        i64::try_from(same.count()).unwrap_or(i64::MAX)
    };
    let all = verdicts(&WeakTools::new())?;
    print!("{:<16}", "without");
    Verdict::ALL
        .iter()
        .for_each(|(_, name)| print!("  {name:>12}"));
    println!("  {:>12}", "changed");
    print!("{:<16}", "nothing");
    for (verdict, _) in Verdict::ALL {
        print!("  {:>12}", count(&all, verdict));
    }
    println!("  {:>12}", 0);
    for list in lists {
        let weak = WeakTools::new().without_word_list(&list);
        let without = verdicts(&weak.map_err(|error| error.to_string())?)?;
        print!("{list:<16}");
        for (verdict, _) in Verdict::ALL {
            let change = count(&without, verdict) - count(&all, verdict);
            print!("  {change:>+12}");
        }
        let changed = all.iter().zip(&without).filter(|(a, b)| a != b).count();
        println!("  {changed:>12}");
    }
    Ok(())
}
