import type { WriteStream } from 'node:tty';

/** Whether a terminal can be drawn on: terminals without a name, or of `TERM=dumb`, take lines alone. */
export function hasScreen(stream: WriteStream, term: string | undefined = process.env['TERM']): boolean {
  return stream.isTTY && term !== undefined && !['', 'dumb', 'unknown'].includes(term);
}
