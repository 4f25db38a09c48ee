/**
 * A client of an address, on the network that it runs in: `probe.ts URL BESIDE`. It asks until its standard input ends,
 * and prints as JSON what it saw; BESIDE is a URL that nothing happens to.
 */
import { once } from 'node:events';
import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { AddressWatch, gapTimeout, type Question } from '../network/support/address-watch.ts';

const [url = '', beside = ''] = process.argv.slice(2);

/** Asks over a connection of its own. */
function asking(of: string): Question {
  return (timeout) =>
    new Promise((resolve) => {
      const nothing = (): void => {
        resolve(undefined);
      };
      get(of, { agent: false, signal: AbortSignal.timeout(timeout) }, (response) => {
        text(response).then(resolve, nothing);
      }).on('error', nothing);
    });
}

const watch = new AddressWatch(asking(url), asking(beside), gapTimeout);
process.stdin.resume();
await once(process.stdin, 'end');
await watch.stop();
const { gap, failedTwice, owners } = watch;
console.log(JSON.stringify({ gapMs: Math.round(gap), failedTwice, owners }));
