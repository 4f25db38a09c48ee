import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino';
import { PrettyStream } from './pretty-log.ts';

/** Words of `--log-level`. */
export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
export type LogLevel = (typeof logLevels)[number];

/** Words of `--log-format`. */
export const logFormats = ['json', 'pretty'] as const;
type LogFormat = (typeof logFormats)[number];

export interface LogOptions {
  readonly level: LogLevel;
  /** `json`: one JSON object a line, for collectors; `pretty`: one readable line, for people. */
  readonly format: LogFormat;
  /** Where lines go; default standard error, so that commands can print results. */
  readonly destination?: DestinationStream;
}

/**
 * Makes the log of a process. Conventions: one line per decision at `info`, with `key` the object's
 * `namespace/name`, `controller` the controller's name, `err` an error; the message is a constant phrase, what
 * varies is a member. Secrets never reach it: transports log no headers.
 */
export function createLog({ level, format, destination }: LogOptions): Logger {
  const lines = destination ?? pino.destination({ dest: 2, sync: true });
  const stream = format === 'pretty' ? new PrettyStream(lines) : lines;
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ['token', 'authorization', 'headers.authorization'], censor: '[redacted]' },
    },
    stream,
  );
}
