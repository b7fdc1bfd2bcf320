-- The tools of MCP servers that the user always allows, as a JSON list of their names.
ALTER TABLE adjutant_user_setting ADD COLUMN allowed_tools TEXT COLLATE "C";
