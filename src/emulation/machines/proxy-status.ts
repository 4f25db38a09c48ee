/** The status endpoints of kube-proxy on its node (cmd/kube-proxy/app/server.go `serveMetrics`). */
import type { Host } from '../../host/host.ts';
import { createServer } from '../../host/node-http.ts';

/** kube-proxy's default for `--metrics-bind-address`. */
const address = '127.0.0.1';
const port = 10249;

/** Serves `/proxyMode` and `/healthz` to programs of the node. Returns what ends it. @throws the system's error. */
export async function serveProxyStatus(host: Host, mode: 'nftables' | 'userspace'): Promise<() => void> {
  const texts: Readonly<Record<string, string>> = { '/proxyMode': mode, '/healthz': 'ok', '/livez': 'ok' };
  const server = createServer((request, response) => {
    request.resume();
    const text = texts[new URL(request.url ?? '/', 'http://kube-proxy').pathname];
    response.writeHead(text === undefined ? 404 : 200, { 'Content-Type': 'text/plain; charset=utf-8' });
    response.end(text ?? '404 page not found\n');
  });
  await host.listen(server, address, port);
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
