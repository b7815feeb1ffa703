"""INTEGRATIONS: noregret inside tools that people already use."""
