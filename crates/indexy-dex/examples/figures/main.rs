//! The paper's figures 6 to 13, as verbs an operation; time is modelled.
//!
//! ```text
//! cargo run --release -p indexy-dex --example figures -- [smoke|laptop|evening] [fig6 ...]
//! ```
//!
//! One compute server of four and one thread; caches are scaled by the number of keys from the
//! paper's 200 million. Counts are exact. Times are the model's: 2, 3 or 8 us a one-sided verb,
//! 2 us more a call, 12.5 GB/s, and 0.3 us of computing an operation. Prints Markdown.

mod contender;
mod figures;
mod load;

use contender::Pool;
use indexy_dex::Result;
use load::Zipf;

/// How much is measured.
struct Preset {
    name: &'static str,
    keys: u64,
    operations: u64,
}

const PRESETS: [Preset; 3] = [
    Preset {
        name: "smoke",
        keys: 200_000,
        operations: 50_000,
    },
    Preset {
        name: "laptop",
        keys: 2_000_000,
        operations: 500_000,
    },
    Preset {
        name: "evening",
        keys: 20_000_000,
        operations: 5_000_000,
    },
];
const THETA: f64 = 0.99;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let preset = PRESETS
        .iter()
        .find(|preset| words.iter().any(|word| word == preset.name))
        .unwrap_or(&PRESETS[0]);
    let known: Vec<&str> = figures::ALL.iter().map(|figure| figure.0).collect();
    let wrong = |word: &&String| *word != preset.name && !known.contains(&word.as_str());
    if let Some(word) = words.iter().find(wrong) {
        let what = format!("{word} is neither smoke, laptop, evening nor one of {known:?}");
        return Err(indexy_dex::Error::Options(what));
    }
    let wanted = |name: &str| {
        let mut chosen = words.iter().filter(|word| *word != preset.name).peekable();
        chosen.peek().is_none() || chosen.any(|word| word == name)
    };
    println!(
        "Preset `{}`: {} keys, {} operations a line, after as many to warm up; theta {THETA}.",
        preset.name, preset.keys, preset.operations
    );
    for (name, figure) in figures::ALL {
        if wanted(name) {
            // A fresh pool: inserts of one figure do not change the next.
            let mut pool = Pool::new(preset.keys)?;
            pool.load.zipf = Some(Zipf::new(preset.keys, THETA));
            figure(&mut pool, preset.operations)?;
        }
    }
    Ok(())
}
