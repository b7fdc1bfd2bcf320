-- The tools of MCP servers that the user always allows, as a JSON object: their names, and the fingerprints of their definitions.
ALTER TABLE adjutant_user_setting ADD COLUMN allowed_tools TEXT COLLATE "C";
