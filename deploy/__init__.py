"""How Forebay gets onto machines."""
