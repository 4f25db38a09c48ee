/** Stands in for etcd: writes down its flags, and says that it is well at its listen address. */
import { createServer } from 'node:http';
import { flagsOf, noteFlags } from './flags.ts';

const flags = flagsOf(process.argv.slice(2));
noteFlags('etcd', flags);
const { hostname, port } = new URL(flags.get('listen-client-urls') ?? '');
const server = createServer((request, response) => {
  response.writeHead(request.url === '/health' ? 200 : 404, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ health: 'true' }));
});
server.listen(Number(port), hostname, () => process.stderr.write('ready to serve client requests\n'));
process.once('SIGTERM', () => {
  server.closeAllConnections();
  server.close();
});
