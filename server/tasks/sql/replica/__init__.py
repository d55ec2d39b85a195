"""One server among several: its lease, the takeover of others' tasks, the inbox, and notifications."""
