import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { bindSocket, sendDatagram } from '../../../src/host/sockets.ts';

test('what cannot be sent is lost, and said', async () => {
  const socket = await bindSocket(createSocket('udp4'), { address: '127.0.0.1' });
  const failures: string[] = [];
  const failed = (error: Error): void => void failures.push(error.message);
  sendDatagram(socket, 'x', { address: '127.0.0.1', port: 0 }, failed);
  expect(failures).toEqual([]);
  const { port } = socket.address();
  const heard = once(socket, 'message');
  sendDatagram(socket, 'hello', { address: '127.0.0.1', port }, failed);
  expect(String((await heard)[0])).toBe('hello');
  sendDatagram(socket, 'x', undefined, failed);
  socket.close();
  sendDatagram(socket, 'x', { address: '127.0.0.1', port }, failed);
  expect(failures).toHaveLength(2);
});
