//! The worker process, which the tests kill.

fn main() -> Result<(), String> {
    adjutant_durability::work()
}
