"""Other A2A agents as tools. Their tasks are followed by `server/a2a_client`."""
