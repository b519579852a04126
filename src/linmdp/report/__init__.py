"""Reports: tables and figures, made from results alone."""
