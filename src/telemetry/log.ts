import { type DestinationStream, type Logger, pino, stdSerializers, stdTimeFunctions } from 'pino';
import { isRecord } from '../objects/json.ts';
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
  /** The stream of lines; default standard error, so that commands can print results. */
  readonly destination?: DestinationStream;
}

/**
 * Creates the log of a process. Conventions: one line per decision at `info`, with `key` the object's `namespace/name`,
 * `controller` the controller's name, `err` an error; the message is a constant phrase, variable parts are members.
 * Secrets never reach it: transports log no headers.
 */
export function createLog({ level, format, destination }: LogOptions): Logger {
  const lines = destination ?? pino.destination({ dest: 2, sync: true });
  const stream = format === 'pretty' ? new PrettyStream(lines) : lines;
  return pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      serializers: { err: describeError },
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: ['token', 'authorization', 'headers.authorization'], censor: '[redacted]' },
    },
    stream,
  );
}

/**
 * The form of an error in the log. Errors from outside (an answer of the API server, a broken connection, a full
 * disk) have a code and no stack; the stack is kept for bugs.
 */
function describeError(error: unknown): unknown {
  const described: unknown = error instanceof Error ? stdSerializers.err(error) : error;
  if (!isRecord(described) || !isForeign(error)) return described;
  const { type, message, code, reason } = described;
  return { type, message, code, reason };
}

function isForeign(error: unknown): boolean {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  // Node's own checks of arguments and states.
  return typeof code === 'number' || (typeof code === 'string' && !code.startsWith('ERR_'));
}
