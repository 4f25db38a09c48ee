import type { UdpFlow } from '../../network/forwarding/stale-flows.ts';
import { type IPFamily, parseAddress } from '../../objects/address.ts';

/**
 * The flows in what `conntrack -L -p udp` printed: one a line, first as the client sends, then as answers come. Lines of
 * another form are left out.
 */
export function* listedFlows(family: IPFamily, listing: string): Generator<UdpFlow> {
  for (let start = 0; start < listing.length;) {
    const newline = listing.indexOf('\n', start);
    const end = newline === -1 ? listing.length : newline;
    const flow = flowOf(family, listing.slice(start, end));
    if (flow !== undefined) yield flow;
    start = end + 1;
  }
}

/** `src=… dst=… sport=… dport=… [UNREPLIED] src=… dst=… sport=…`: the second source is that of answers. */
const pattern = / src=\S+ dst=(\S+) sport=\d+ dport=(\d+) .*?\bsrc=(\S+) dst=\S+ sport=(\d+)/;

function flowOf(family: IPFamily, line: string): UdpFlow | undefined {
  const [, destination, port, replySource, replyPort] = pattern.exec(line) ?? [];
  if (destination === undefined || port === undefined || replySource === undefined) return undefined;
  return {
    family,
    destination: canonical(family, destination),
    port: Number(port),
    replySource: canonical(family, replySource),
    replyPort: Number(replyPort),
  };
}

/** The C library shortens IPv6 addresses in another way than RFC 5952 here and there. */
function canonical(family: IPFamily, text: string): string {
  return family === 'IPv4' ? text : (parseAddress(text)?.canonical ?? text);
}
