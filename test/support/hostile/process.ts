/** Hostile clients in a process of their own: what they take of the machine is not the other client's. */
import { textAt } from '../../../src/objects/json.ts';
import { attack } from './clients.ts';

const stop = new AbortController();
process.on('message', (message) => {
  if (message === 'stop') {
    stop.abort();
    return;
  }
  const target = { url: textAt(message, 'url'), ca: textAt(message, 'ca'), token: textAt(message, 'token') };
  void attack(target, stop.signal).then((done) => {
    process.send?.(done);
    process.disconnect();
  });
});
