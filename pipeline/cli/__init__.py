"""The verbs of the `forebay` command. A verb's module is imported when it is called."""
