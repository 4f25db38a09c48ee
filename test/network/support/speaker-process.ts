/**
 * The speaker of a node as a process that can be killed or stopped. Its arguments are the address of a peer, our BGP
 * identifier, both AS numbers, hold and restart time,
 * and the networks that it is told of; it prints its process number.
 */
import { localHost } from '../../../src/host/local-host.ts';
import { routesTo, speakerAt } from './speaker.ts';

const [
  address = '',
  routerId = '',
  peerAs = '',
  localAs = '',
  holdSeconds = '',
  restartSeconds = '',
  ...cidrs
] = process.argv.slice(2);
const peer = {
  ...{ name: 'router', address, port: 179, routerId, sourceAddress: undefined },
  ...{ peerAs: Number(peerAs), localAs: Number(localAs) },
  ...{ holdSeconds: Number(holdSeconds), restartSeconds: Number(restartSeconds) },
};
speakerAt(localHost).sync([{ peer, routes: routesTo(cidrs) }]);
process.stdout.write(`${process.pid}\n`);
setInterval(() => undefined, 1_000_000);
