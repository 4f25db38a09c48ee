import { isatty } from 'node:tty';
import { styleText } from 'node:util';
import type { DestinationStream } from 'pino';
import { isRecord } from '../objects/json.ts';

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
export class PrettyStream implements DestinationStream {
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
