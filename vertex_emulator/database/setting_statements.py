"""The statements on the settings of a data folder: texts by key."""

from vertex_emulator.database.statement_base import Statements


class SettingStatements(Statements):
    """The statements on settings."""

    def find_setting(self, key: str) -> str | None:
        """Return a setting of the data folder; None if it was never set."""
        row = self._select_first("SELECT value FROM settings WHERE key = ?", key)
        return row["value"] if row else None

    def set_setting(self, key: str, value: str) -> None:
        """Store a setting of the data folder."""
        self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (key, value))

    def remove_setting(self, key: str) -> None:
        """Remove a setting of the data folder, as if it had never been set."""
        self._connection.execute("DELETE FROM settings WHERE key = ?", (key,))
