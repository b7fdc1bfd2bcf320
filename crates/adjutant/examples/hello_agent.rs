//! An agent with one tool.

use adjutant::prelude::*;

/// Weather for a city.
#[tool(read_only)]
async fn weather(city: String) -> String {
    format!("sunny in {city}")
}

#[tokio::main]
async fn main() -> adjutant::Result<()> {
    let agent = Agent::builder("helper")
        .model(Model::from_env()?)
        .instruction("Be brief.")
        .tool(weather)
        .build()?;
    let response = agent.run("What's the weather in Oslo?").await?;
    println!("{}", response.content);
    Ok(())
}
