/** A flag or option that cannot be used; the message names it and what it takes. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** A value that a flag or option does not take. The message says what it takes; the reader of flags adds the name. */
export class WrongValue extends Error {
  override readonly name = 'WrongValue';
}
