"""The report page, its server for corrections, and exports."""
