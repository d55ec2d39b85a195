"""What has nothing to do with one protocol: connections, shutdown, origins, metrics, forms of time and of errors."""
