// Nothing but a place for the headers that all tests read, compiled once.
