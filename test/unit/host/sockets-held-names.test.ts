import { connect } from 'node:net';
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { holdNames } from '../../../src/host/sockets.ts';

const [one, two, three] = [randomUUID(), randomUUID(), randomUUID()];

test('names are taken all or none, and free again when they are released', async () => {
  const first = await holdNames([one, two]);
  expect(await holdNames([three, two])).toEqual({ taken: two });
  const other = await holdNames([three]);
  expect(first).toHaveProperty('release');
  if ('release' in first) first.release();
  if ('release' in other) other.release();
  const again = await holdNames([three, two, one]);
  expect(again).toHaveProperty('release');
  if ('release' in again) again.release();
});

test('who connects to a name is cut off, and the name stays', async () => {
  const holding = await holdNames([one]);
  const socket = connect({ path: `\0${one}` });
  socket.on('error', () => undefined);
  socket.write('hello');
  await new Promise((resolve) => socket.once('close', resolve));
  expect(await holdNames([one])).toEqual({ taken: one });
  if ('release' in holding) holding.release();
});
