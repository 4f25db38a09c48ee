import type { AttachmentRules } from '../network/attachments/attachments.ts';
import { attachmentsController } from './attachments/controller.ts';
import { connectivityChecker } from './connectivity-checks/checker.ts';
import { connectivityCheckGenerator } from './connectivity-checks/generator.ts';
import { egressFirewallsController } from './egress-firewalls/controller.ts';
import { egressIPController } from './egress-ips/controller.ts';
import { egressQoSController } from './egress-qos/controller.ts';
import { egressRouterController } from './egress-routers/controller.ts';
import { type CatalogEntry, catalogEntry } from './run.ts';

/**
 * Controllers of kinds that OpenShift, OVN-Kubernetes and others define: they start where these are served.
 *
 * @param rules which networks Pods may name.
 */
export function networkKindControllers(rules: AttachmentRules = {}): readonly CatalogEntry[] {
  return [
    catalogEntry(egressIPController, 'servicenet-egress-ip'),
    catalogEntry(egressFirewallsController, 'servicenet-egress-firewall'),
    catalogEntry(egressQoSController, 'servicenet-egress-qos'),
    catalogEntry(egressRouterController(), 'egress-router-controller'),
    catalogEntry(connectivityChecker(), 'check-endpoints'),
    catalogEntry(connectivityCheckGenerator, 'connectivity-check-controller'),
    catalogEntry(attachmentsController(rules), 'servicenet-network-attachment'),
  ];
}
