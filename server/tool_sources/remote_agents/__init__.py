"""Other A2A agents as tools. `agent_client` alone imports the A2A SDK's client."""
