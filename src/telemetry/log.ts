import { isatty } from 'node:tty';
import { styleText } from 'node:util';
import { type DestinationStream, type Logger, pino, stdSerializers, stdTimeFunctions } from 'pino';
import { isRecord } from '../objects/json.ts';
import type { LogFormat, LogLevel } from './log-words.ts';

const colours = {
  trace: 'gray',
  debug: 'gray',
  info: 'cyan',
  warn: 'yellow',
  error: 'red',
  fatal: 'magenta',
} as const;
// Not `process.stderr.isTTY`: in a worker thread that is a pipe to the main thread, while the log writes to the
// descriptor.
const withColour = isatty(2) && process.env['NO_COLOR'] === undefined;

/** Turns pino's JSON lines into `12:34:56.789 INFO  message key=default/web …`. */
class PrettyStream implements DestinationStream {
  readonly #below: DestinationStream;

  constructor(below: DestinationStream) {
    this.#below = below;
  }

  write(line: string): void {
    this.#below.write(render(line));
  }
}

function render(line: string): string {
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    return line;
  }
  if (!isRecord(entry)) return line;
  const { time, level, msg, err, ...rest } = entry;
  const clock = typeof time === 'string' ? time.slice(11, 23) : '';
  const word = typeof level === 'string' ? level : '';
  const members = Object.entries(rest).map(([name, value]) => `${name}=${plain(value)}`);
  const error = isRecord(err) ? [`err=${plain(err['message'])}`] : [];
  const text = typeof msg === 'string' ? msg : '';
  return `${[clock, colour(word), text, ...members, ...error].join(' ')}\n`;
}

function plain(value: unknown): string {
  const simple = typeof value === 'string' && !/[\s"=]/.test(value);
  return simple ? value : JSON.stringify(value);
}

function colour(level: string): string {
  const word = level.toUpperCase().padEnd(5);
  if (!withColour) return word;
  for (const [name, style] of Object.entries(colours)) if (name === level) return styleText(style, word);
  return word;
}

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

/** Milliseconds between two lines of the same text. */
const repeatMs = 60_000;

/** Limits repeated log lines: each text is due the first time, then once a minute. */
export class LogThrottle {
  readonly #monotonic: () => number;
  readonly #lastLogged = new Map<string, number>();

  /** @param monotonic a clock in milliseconds that never goes back. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic;
  }

  /** True when the text may be logged now; it then counts as logged. */
  isDue(text: string): boolean {
    const now = this.#monotonic();
    const before = this.#lastLogged.get(text);
    if (before !== undefined && now - before < repeatMs) return false;
    this.#lastLogged.set(text, now);
    return true;
  }
}
