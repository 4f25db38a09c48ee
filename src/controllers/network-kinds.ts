import type { ControllerDefinition } from '../runtime/context.ts';
import { connectivityChecker } from './connectivity-checks/checker.ts';
import { connectivityCheckGenerator } from './connectivity-checks/generator.ts';
import { egressFirewallsController } from './egress-firewalls/controller.ts';
import { egressIPController } from './egress-ips/controller.ts';
import type { CatalogEntry } from './run.ts';

/** Controllers of kinds that OpenShift, OVN-Kubernetes and others define: they start where these are served. */
export function networkKindControllers(): readonly CatalogEntry[] {
  const entry = (definition: ControllerDefinition, eventSource: string): CatalogEntry => ({
    name: definition.name,
    start: (context) => definition.start(context),
    onByDefault: true,
    eventSource,
  });
  return [
    entry(egressIPController, 'servicenet-egress-ip'),
    entry(egressFirewallsController, 'servicenet-egress-firewall'),
    entry(connectivityChecker(), 'check-endpoints'),
    entry(connectivityCheckGenerator, 'connectivity-check-controller'),
  ];
}
