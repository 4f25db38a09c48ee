import type { Handler, UpgradeHandler } from '../http/exchange.ts';
import type { EndpointResolver } from './endpoint-resolver.ts';

/** Serves `services/<id>/proxy/…` and `pods/<id>/proxy/…`. */
export function proxyHandler(_resolver: EndpointResolver): Handler {
  throw new Error('not built yet');
}

/** The same for upgrades (WebSocket). */
export function proxyUpgradeHandler(_resolver: EndpointResolver): UpgradeHandler {
  throw new Error('not built yet');
}
