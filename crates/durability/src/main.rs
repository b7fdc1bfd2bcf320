//! The process that works, and is killed.

fn main() -> Result<(), String> {
    adjutant_durability::work()
}
