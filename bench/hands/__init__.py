"""`make hands`: people and agents work on one document at once, while servers are killed; nothing may be lost."""
