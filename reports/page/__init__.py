"""Reports as documents: sentences, tables and figures, and how they become pages."""
