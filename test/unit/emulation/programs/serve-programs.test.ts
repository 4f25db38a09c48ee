import { describe, expect, it } from 'vitest';
import { LogQueue } from '../../../../src/emulation/programs/serve-programs.ts';

/** A queue whose channel takes a text when it is told to. */
function channel() {
  const sent: string[] = [];
  const taken: (() => void)[] = [];
  const queue = new LogQueue((text, isTaken) => {
    sent.push(text);
    taken.push(isTaken);
  });
  return { queue, sent, take: () => taken.shift()?.() };
}

describe('the queue of a log', () => {
  it('sends a line at once, and what comes meanwhile together', () => {
    const { queue, sent, take } = channel();
    for (const line of ['a\n', 'b\n', 'c\n']) queue.write(line);
    expect(sent).toEqual(['a\n']);
    take();
    expect(sent).toEqual(['a\n', 'b\nc\n']);
    take();
    queue.write('d\n');
    expect(sent).toEqual(['a\n', 'b\nc\n', 'd\n']);
  });

  it('keeps a limited amount, and says how many lines are missing', () => {
    const { queue, sent, take } = channel();
    const line = `${'x'.repeat(1023)}\n`;
    for (let count = 0; count < 1000; count++) queue.write(line);
    take();
    expect(sent[1]?.length).toBeLessThan(300 * 1024);
    const lines = sent[1]?.split('\n') ?? [];
    const [, missing] = /^servicenet: (\d+) lines are missing/.exec(lines.at(-2) ?? '') ?? [];
    // The first was sent, and behind the last there is nothing.
    expect(lines.length - 2 + Number(missing)).toBe(999);
    take();
    queue.write('later\n');
    expect(sent.at(-1)).toBe('later\n');
  });

  it('sends the rest at an end, though nothing is taken any more', () => {
    const { queue, sent } = channel();
    queue.write('a\n');
    queue.write('b\n');
    queue.flush();
    expect(sent).toEqual(['a\n', 'b\n']);
  });
});
