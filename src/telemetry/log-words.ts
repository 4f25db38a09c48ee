/** What flags say of a log: they are read without loading pino. */

/** Words of `--log-level`. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** Words of `--log-format`. */
export const logFormats = ['json', 'pretty'] as const;
export type LogFormat = (typeof logFormats)[number];
