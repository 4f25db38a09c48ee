/** An embedded server without controllers, in a process of its own; says where it is on standard output. */
import { startApiServer } from '../../src/testing/index.ts';

const server = await startApiServer({ serviceClusterIpRange: '10.0.0.0/12' });
const { url, token, ca } = server;
process.stdout.write(`${JSON.stringify({ url, token, ca })}\n`);
process.stdin.resume();
process.stdin.once('end', () => {
  server.stop().then(
    () => process.exit(0),
    () => process.exit(1),
  );
});
