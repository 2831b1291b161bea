"""Pure status: from what was observed and done to conditions, reasons and messages."""
