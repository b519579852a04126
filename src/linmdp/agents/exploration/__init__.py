"""How Q is made optimistic: one file per way."""
