"""The service: studies over HTTP and JSON, for callers in any language."""
