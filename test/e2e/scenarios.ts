/**
 * One e2e test of Kubernetes, and what is here of it.
 *
 * `name` is upstream's, without the label of its SIG and other labels in brackets. `conformance` is that of Kubernetes 1.37.
 */
export interface Scenario {
  readonly name: string;
  readonly conformance: boolean;
  readonly here: Packets | ApiCalls | Missing;
}

/** A test here that sends the packets of the scenario. One test may have the steps of several scenarios. */
interface Packets {
  /** Its path, from the root of the project. */
  readonly file: string;
  readonly test: string;
}

/** A row of `test/integration/e2e-coverage.md` has the calls of the scenario to the API, which are all that it does. */
interface ApiCalls {
  readonly calls: 'all';
}

/** No test here has the steps of the scenario. */
interface Missing {
  readonly reason: string;
}

const workloads = 'test/network/e2e/workloads.test.ts';
const programs = 'test/network/e2e/programs.test.ts';
const services = 'test/network/e2e/services.test.ts';
const balancers = 'test/network/e2e/load-balancers.test.ts';
const severalNodes = 'test/network/e2e/traffic-distribution.test.ts';
const rollingUpdate = 'test/network/services/rolling-update.test.ts';
const networking = 'test/network/e2e/networking.test.ts';
const conntrack = 'test/network/conntrack.test.ts';
const reachability = 'test/network/services/reachability.test.ts';
const trafficPolicy = 'test/network/services/traffic-policy.test.ts';

export const conformance = (name: string, here: Scenario['here']): Scenario => ({
  name,
  conformance: true,
  here,
});
export const other = (name: string, here: Scenario['here']): Scenario => ({ name, conformance: false, here });
export const packets = (file: string, test: string): Packets => ({ file, test });
const apiCalls: ApiCalls = { calls: 'all' };

const clusterNames =
  'DNS should provide DNS for the cluster, for services, and resolve partial qualified names';
const podNames = 'DNS should provide DNS for headless services, and for pods for Hostname and Subdomain';
const toPods =
  'Networking Granular Checks: Pods should function for intra-pod and node-pod communication: http and udp';
const affinity =
  'should have session affinity work, and be able to switch it, for cluster IPs and node ports';
const fromExternalName =
  'should be able to change the type from ExternalName to ClusterIP, to NodePort and back';
const proxied = 'Proxy version v1 should proxy through a service and a pod, and logs of nodes';
const granularChanges =
  'Networking Granular Checks: Services should update endpoints and node ports, and function for client IP based session affinity and endpoints using hostNetwork: http and udp';
const udpCycles =
  'Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service, with InternalTrafficPolicy set to Local and for a client with hostNetwork';
const onHosts =
  'should respect internalTrafficPolicy=Local Pod (hostNetwork: true) to Pod, and Pod and Node to Pod (hostNetwork: true)';
const changedType =
  'should be able to change the type between ClusterIP, ExternalName and NodePort, over TCP and UDP';
const terminatingPods = 'Connectivity Pod Lifecycle should be able to connect to and from a terminating Pod';
const blueGreen =
  'Connectivity Pod Lifecycle should be able to have zero downtime on a Blue Green deployment using Services and Readiness Gates';
const manySlices =
  'EndpointSlice should support a Service with multiple endpoint IPs and ports specified in multiple EndpointSlices';
const balancedAffinity =
  'should have session affinity work, and be able to switch it, with Local and Cluster traffic policy';
const balancedUdp =
  'should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on different nodes, and on the same nodes';
const localTargets =
  'ExternalTrafficPolicy: Local should only target nodes with endpoints, and target all nodes with endpoints';
const nearOnNodes =
  'should route traffic correctly between pods on multiple nodes when using PreferClose and PreferSameZone';
const sameNode =
  'should route traffic to an endpoint on the same node or fall back to same zone when using PreferSameNode';
const affinityTimeout =
  'should have session affinity timeout work for service with type clusterIP, and for NodePort service';
const sidecarPorts = 'should connect to the ports and the named ports exposed by restartable init containers';
const bothProtocols =
  'should serve endpoints on same port and different protocols, also for internal traffic on Type LoadBalancer';
const disruption =
  'should not have connectivity disruption during rolling update with externalTrafficPolicy=%s';
const labels = 'should implement service.kubernetes.io/service-proxy-name and service.kubernetes.io/headless';
const notReady =
  'should be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is true, and not be able to if it is false';
const near =
  'Traffic Distribution should route traffic to an endpoint that is near when using %s, and fall back when it becomes unavailable';
const bothFamilies =
  '[Feature:IPv6DualStack] should have ipv4 and ipv6 node podCIDRs, podIPs and hostIPs, and host ports in both';
const granular =
  'Networking Granular Checks: Services should function for pod, node and endpoint Services, by both IP families: http and udp';
const large =
  'Networking Granular Checks: Services should be able to handle large requests, by both IP families: http and udp';
const portChange =
  'Conntrack should be able to cleanup conntrack entries when UDP service target port changes for a NodePort service';
const sourceRanges =
  'should only allow access from service loadbalancer source ranges, should work from pods';
const terminating =
  'should fallback to terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Cluster and externalTrafficPolicy=Cluster';
const localTerminating =
  'should fallback to local terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Local and externalTrafficPolicy=Local';

/**
 * The conformance tests of sig-network, and of the others those whose point is what Pods and nodes send. Tests of the API
 * alone are in `test/integration/e2e-coverage.md`, those of NetworkPolicies in `test/network/support/policy-scenarios.ts`.
 */
export const scenarios: readonly Scenario[] = [
  conformance('API Server should have Endpoints and EndpointSlices pointing to API Server', apiCalls),
  conformance('API Server should provide secure master service', apiCalls),
  conformance(
    'DNS should provide /etc/hosts entries for the cluster',
    packets(programs, 'DNS should provide /etc/hosts entries for the cluster'),
  ),
  conformance(
    'DNS should provide DNS for ExternalName services',
    packets(networking, 'DNS should provide DNS for ExternalName services'),
  ),
  conformance('DNS should provide DNS for pods for Hostname', packets(networking, podNames)),
  conformance('DNS should provide DNS for pods for Subdomain', packets(networking, podNames)),
  conformance('DNS should provide DNS for services', packets(networking, clusterNames)),
  conformance('DNS should provide DNS for the cluster', packets(networking, clusterNames)),
  conformance(
    'DNS should resolve DNS of partial qualified names for services',
    packets(networking, clusterNames),
  ),
  conformance(
    'DNS should support configurable pod DNS nameservers',
    packets(networking, 'DNS should support configurable pod DNS nameservers, and resolver'),
  ),
  conformance(
    'EndpointSlice should create Endpoints and EndpointSlices for Pods matching a Service',
    apiCalls,
  ),
  conformance(
    'EndpointSlice should create and delete EndpointSlices for a Service with a selector that matches no pods',
    apiCalls,
  ),
  conformance(
    'EndpointSlice should support a Service with multiple endpoint IPs specified in multiple EndpointSlices',
    packets(programs, manySlices),
  ),
  conformance(
    'EndpointSlice should support a Service with multiple ports specified in multiple EndpointSlices',
    packets(programs, manySlices),
  ),
  conformance('EndpointSlice should support creating EndpointSlice API operations', apiCalls),
  conformance(
    'EndpointSliceMirroring should mirror a custom Endpoints resource through create update and delete',
    apiCalls,
  ),
  conformance('Endpoints should test the lifecycle of an Endpoint', apiCalls),
  conformance('EndpointsController should create Endpoints for Pods matching a Service', apiCalls),
  conformance(
    'EndpointsController should create and delete Endpoints for a Service with a selector that matches no pods',
    apiCalls,
  ),
  conformance(
    'HostPort validates that there is no conflict between pods with same hostPort but different hostIP and protocol',
    packets(
      networking,
      'HostPort validates that there is no conflict between pods with same hostPort but different hostIP and protocol',
    ),
  ),
  conformance('Ingress API should support creating Ingress API operations', apiCalls),
  conformance('IngressClass API should support creating IngressClass API operations', apiCalls),
  ...['intra-pod', 'node-pod'].flatMap((way) =>
    ['http', 'udp'].map((protocol) =>
      conformance(
        `Networking Granular Checks: Pods should function for ${way} communication: ${protocol}`,
        packets(networking, toPods),
      ),
    ),
  ),
  conformance(
    'Proxy version v1 A set of valid responses are returned for both pod and service Proxy',
    packets(
      programs,
      'Proxy version v1 A set of valid responses are returned for both pod and service Proxy',
    ),
  ),
  conformance(
    'Proxy version v1 A set of valid responses are returned for both pod and service ProxyWithPath',
    packets(
      networking,
      'Proxy version v1 A set of valid responses are returned for both pod and service ProxyWithPath',
    ),
  ),
  conformance('Proxy version v1 should proxy through a service and a pod', packets(programs, proxied)),
  conformance('Service endpoints latency should not be very high', apiCalls),
  conformance('ServiceCIDR and IPAddress API should support IPAddress API operations', apiCalls),
  conformance('ServiceCIDR and IPAddress API should support ServiceCIDR API operations', apiCalls),
  conformance(
    'Services should be able to change the type from ClusterIP to ExternalName',
    packets(programs, changedType),
  ),
  conformance(
    'Services should be able to change the type from ExternalName to ClusterIP',
    packets(services, fromExternalName),
  ),
  conformance(
    'Services should be able to change the type from ExternalName to NodePort',
    packets(programs, changedType),
  ),
  conformance(
    'Services should be able to change the type from NodePort to ExternalName',
    packets(services, fromExternalName),
  ),
  conformance(
    'Services should be able to create a functioning NodePort service',
    packets(services, 'should be able to create a functioning NodePort service'),
  ),
  conformance(
    'Services should be able to switch session affinity for NodePort service',
    packets(services, affinity),
  ),
  conformance(
    'Services should be able to switch session affinity for service with type clusterIP',
    packets(services, affinity),
  ),
  conformance('Services should complete a service status lifecycle', apiCalls),
  conformance('Services should delete a collection of services', apiCalls),
  conformance('Services should find a service from listing all namespaces', apiCalls),
  conformance('Services should have session affinity work for NodePort service', packets(services, affinity)),
  conformance(
    'Services should have session affinity work for service with type clusterIP',
    packets(services, affinity),
  ),
  conformance(
    'Services should serve a basic endpoint from pods',
    packets(services, 'should serve a basic endpoint from pods'),
  ),
  conformance(
    'Services should serve endpoints on same port and different protocols',
    packets(services, bothProtocols),
  ),
  conformance(
    'Services should serve multiport endpoints from pods',
    packets(reachability, 'should serve multiport endpoints from pods'),
  ),

  other(
    'Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service',
    packets(
      networking,
      'Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service',
    ),
  ),
  ...[
    'should be able to preserve UDP traffic when server pod cycles for a NodePort service',
    'should be able to preserve UDP traffic when initial unready endpoints get ready',
  ].map((test) => other(`Conntrack ${test}`, packets(conntrack, test))),
  other(
    'Conntrack should be able to cleanup conntrack entries when UDP service target port changes for a NodePort service',
    packets(networking, portChange),
  ),
  ...['with InternalTrafficPolicy set to Local', 'and client is hostNetwork'].map((when) =>
    other(
      `Conntrack should be able to preserve UDP traffic when server pod cycles for a ClusterIP service ${when}`,
      packets(programs, udpCycles),
    ),
  ),
  ...['connect from a Pod to a terminating Pod', 'connect to other Pod from a terminating Pod'].map((what) =>
    other(`Connectivity Pod Lifecycle should be able to ${what}`, packets(programs, terminatingPods)),
  ),
  other(blueGreen, packets(programs, blueGreen)),
  other('NoSNAT Should be able to send traffic between Pods without SNAT', {
    ...packets(
      'test/network/emulation/agnhost.test.ts',
      'NoSNAT: netexec sees a Pod of another node by its own address',
    ),
  }),
  ...[
    'Conntrack should drop INVALID conntrack entries',
    'DNS should support configurable pod resolv.conf',
    'KubeProxy should set TCP CLOSE_WAIT timeout',
  ].map((test) => other(test, packets(programs, test))),
  ...[
    'DNS HostNetwork should resolve DNS of partial qualified names for services on hostNetwork pods with dnsPolicy: ClusterFirstWithHostNet',
    'DNS should work with the pod containing more than 6 DNS search paths and longer than 256 search list characters',
    'DNS should work with a search path containing an underscore and a search path with a single dot',
  ].map((test) => other(test, packets(networking, test))),
  ...['with explicit kubelet port using proxy subresource', 'using proxy subresource'].map((how) =>
    other(`Proxy version v1 should proxy logs on node ${how}`, packets(programs, proxied)),
  ),
  other(
    'Networking should check kube-proxy urls',
    packets(programs, 'Networking should check kube-proxy urls'),
  ),
  other('Networking should provide unchanging, static URL paths for kubernetes api services', apiCalls),
  ...[
    ...['http', 'udp'].flatMap((protocol) => [
      `should update endpoints: ${protocol}`,
      `should update nodePort: ${protocol}`,
      `should function for client IP based session affinity: ${protocol}`,
    ]),
    'should function for multiple endpoint-Services with same selector',
    'should function for service endpoints using hostNetwork',
    'should support basic nodePort: udp functionality',
  ].map((test) => other(`Networking Granular Checks: Services ${test}`, packets(programs, granularChanges))),
  ...[
    ...['pod-Service', 'node-Service', 'endpoint-Service'].flatMap((way) =>
      ['http', 'udp'].map((protocol) => `should function for ${way}: ${protocol}`),
    ),
    ...['http', 'udp'].flatMap((protocol) => [
      `should update endpoints: ${protocol}`,
      `should function for client IP based session affinity: ${protocol}`,
    ]),
  ].map((test) =>
    other(
      `[Feature:IPv6DualStack] Granular Checks: Services Secondary IP Family ${test}`,
      packets(networking, granular),
    ),
  ),
  ...['http', 'udp'].map((protocol) =>
    other(
      `[Feature:IPv6DualStack] Granular Checks: Services Secondary IP Family should be able to handle large requests: ${protocol}`,
      packets(networking, large),
    ),
  ),
  ...[
    'should have ipv4 and ipv6 internal node ip',
    'should create a single stack service with cluster ip from primary service range',
    ...['ipv4', 'ipv6', 'ipv4,v6', 'ipv6,v4'].map(
      (family) => `should create service with ${family} cluster ip`,
    ),
  ].map((test) => other(`[Feature:IPv6DualStack] ${test}`, apiCalls)),
  // Theirs sends nothing.
  other('Services should allow creating a basic SCTP service with pod and endpoints', apiCalls),
  other(
    'EndpointSliceMirroring should mirror a custom Endpoint with multiple subsets and same IP address',
    apiCalls,
  ),
  other(
    'Service CIDRs should create Services and serve on different Service CIDRs',
    packets(services, 'Service CIDRs should create Services and serve on different Service CIDRs'),
  ),
  ...[
    'should set default value on new IngressClass',
    'should not set default value if no default IngressClass',
    'should choose the one with the later CreationTimestamp, if equal the one with the lower name when two ingressClasses are marked as default',
    'should allow IngressClass to have Namespace-scoped parameters',
  ].map((test) => other(`IngressClass [Feature:Ingress] ${test}`, apiCalls)),
  ...['operations', 'with endport field'].map((what) =>
    other(`Netpol API should support creating NetworkPolicy API ${what}`, apiCalls),
  ),
  ...['PreferClose', 'PreferSameZone'].map((what) =>
    other(
      `Traffic Distribution should route traffic correctly between pods on multiple nodes when using ${what}`,
      packets(severalNodes, nearOnNodes),
    ),
  ),
  other(`Traffic Distribution ${sameNode}`, packets(severalNodes, sameNode)),
  ...['Local', 'Cluster'].flatMap((policy) =>
    ['have session affinity work', 'be able to switch session affinity'].map((what) =>
      other(
        `LoadBalancers [Feature:LoadBalancer] should ${what} for LoadBalancer service with ${policy} traffic policy`,
        packets(balancers, balancedAffinity),
      ),
    ),
  ),
  ...['TCP', 'UDP'].map((protocol) =>
    other(
      `LoadBalancers [Feature:LoadBalancer] [${protocol}] should be able to change the type and ports of the service`,
      packets(balancers, '[%s] should be able to change the type and ports of the service'),
    ),
  ),
  // Theirs sends nothing.
  other(
    'LoadBalancers [Feature:LoadBalancer] should handle load balancer cleanup finalizer for service',
    apiCalls,
  ),
  other(
    'LoadBalancers [Feature:LoadBalancer] should be able to create LoadBalancer Service without NodePort and change it',
    packets(balancers, 'should be able to create LoadBalancer Service without NodePort and change it'),
  ),
  ...['different', 'the same'].map((which) =>
    other(
      `LoadBalancers [Feature:LoadBalancer] should be able to preserve UDP traffic when server pod cycles for a LoadBalancer service on ${which} nodes`,
      packets(balancers, balancedUdp),
    ),
  ),
  ...['Cluster', 'Local'].map((policy) =>
    other(
      `LoadBalancers [Feature:LoadBalancer] should not have connectivity disruption during rolling update with externalTrafficPolicy=${policy}`,
      packets(rollingUpdate, disruption),
    ),
  ),
  other(
    'LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] should work for type=LoadBalancer',
    packets(balancers, 'ExternalTrafficPolicy: Local should work for type=LoadBalancer'),
  ),
  ...['only target nodes with endpoints', 'target all nodes with endpoints'].map((test) =>
    other(
      `LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] should ${test}`,
      packets(balancers, localTargets),
    ),
  ),
  ...['Pod (hostNetwork: true) to Pod', 'Pod and Node, to Pod (hostNetwork: true)'].map((test) =>
    other(`Services should respect internalTrafficPolicy=Local ${test}`, packets(programs, onHosts)),
  ),
  other(
    '[Feature:IPv6DualStack] should create pod, add ipv6 and ipv4 ip to pod ips',
    packets(networking, bothFamilies),
  ),
  other(
    '[Feature:IPv6DualStack] should create pod, add ipv6 and ipv4 ip to host ips',
    packets(networking, bothFamilies),
  ),
  ...['http', 'udp'].flatMap((protocol) => [
    other(
      `Networking Granular Checks: Services should function for pod-Service: ${protocol}`,
      packets(networking, granular),
    ),
    other(
      `Networking Granular Checks: Services should function for node-Service: ${protocol}`,
      packets(networking, granular),
    ),
    other(
      `Networking Granular Checks: Services should function for endpoint-Service: ${protocol}`,
      packets(networking, granular),
    ),
    other(
      `Networking Granular Checks: Services should be able to handle large requests: ${protocol}`,
      packets(networking, large),
    ),
  ]),
  other('Networking should provide Internet connection for containers', {
    reason: 'the cluster network reaches nothing outside itself',
  }),
  other('Networking should recreate its iptables rules if they are deleted', {
    reason:
      '[Disruptive]; nodes have no iptables: test/network/faults.test.ts deletes the tables of nftables instead',
  }),
  ...[
    'should be updated after adding or deleting ports',
    'should allow pods to hairpin back to themselves through services',
    'should be able to up and down services',
    'should work after the service has been recreated',
    'should be possible to connect to a service via ExternalIP when the external IP is not assigned to a node',
    'should be rejected when no endpoints exist',
    'should respect internalTrafficPolicy=Local Pod to Pod',
    'should support named targetPorts that resolve to different ports on different endpoints',
    'should implement NodePort and HealthCheckNodePort correctly when ExternalTrafficPolicy changes',
    'should fallback to local terminating endpoints when there are no ready endpoints with internalTrafficPolicy=Local',
    'should create endpoints for unready pods',
  ].map((test) => other(`Services ${test}`, packets(services, test))),
  ...['ports', 'named ports'].map((what) =>
    other(
      `Services should connect to the ${what} exposed by restartable init containers`,
      packets(services, sidecarPorts),
    ),
  ),
  ...['service with type clusterIP', 'NodePort service'].map((what) =>
    other(
      `Services should have session affinity timeout work for ${what}`,
      packets(services, affinityTimeout),
    ),
  ),
  other(
    'Services should serve endpoints on same port and different protocol for internal traffic on Type LoadBalancer',
    packets(services, bothProtocols),
  ),
  other('Services should implement service.kubernetes.io/service-proxy-name', packets(services, labels)),
  other('Services should implement service.kubernetes.io/headless', packets(services, labels)),
  other(
    'Services should be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is true',
    packets(services, notReady),
  ),
  other(
    'Services should not be able to connect to terminating and unready endpoints if PublishNotReadyAddresses is false',
    packets(services, notReady),
  ),
  other(
    'Services should preserve source pod IP for traffic thru service cluster IP',
    packets(reachability, 'should preserve source pod IP for traffic thru service cluster IP'),
  ),
  other(
    'Services should be able to update service type to NodePort listening on same port number but different protocols',
    packets(
      'test/network/services/external.test.ts',
      'should be able to update service type to NodePort listening on same port number but different protocols',
    ),
  ),
  other(
    'Services should fail health check node port if there are only terminating endpoints',
    packets(
      'test/network/health.test.ts',
      'should fail health check node port if there are only terminating endpoints',
    ),
  ),
  // `externall` is how Kubernetes spells it.
  ...['internalTrafficPolicy', 'externallTrafficPolicy'].map((policy) =>
    other(
      `Services should fallback to terminating endpoints when there are no ready endpoints with ${policy}=Cluster`,
      packets(trafficPolicy, terminating),
    ),
  ),
  other(
    'Services should fallback to local terminating endpoints when there are no ready endpoints with externalTrafficPolicy=Local',
    packets(trafficPolicy, localTerminating),
  ),
  other(
    'Services should be rejected for evicted pods (no endpoints exist)',
    packets(workloads, 'should be rejected for evicted pods (no endpoints exist)'),
  ),
  ...['prevent NodePort collisions', 'check NodePort out-of-range', 'release NodePorts on delete'].map(
    (name) => other(`Services should ${name}`, apiCalls),
  ),
  other('Services should work after restarting kube-proxy', {
    reason: '[Disruptive], by SSH to nodes; test/network/faults.test.ts ends and starts our agent',
  }),
  other('Services should work after restarting apiserver', {
    reason:
      '[Disruptive], by SSH to nodes; test/network/faults.test.ts takes the API server away from our agent',
  }),
  other(
    'LoadBalancers [Feature:LoadBalancer] should only allow access from service loadbalancer source ranges',
    packets(services, sourceRanges),
  ),
  other(
    'LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] should work from pods',
    packets(services, sourceRanges),
  ),
  other(
    'Topology Hints should distribute endpoints evenly',
    packets(severalNodes, 'Topology Hints should distribute endpoints evenly'),
  ),
  other(
    'Traffic Distribution should route traffic to an endpoint in the same zone when using PreferClose',
    packets(networking, near),
  ),
  other(
    'Traffic Distribution should route traffic to an endpoint in the same zone when using PreferSameZone',
    packets(networking, near),
  ),
  other(
    'Traffic Distribution should route traffic to an endpoint on the same node when using PreferSameNode and fall back when the endpoint becomes unavailable',
    packets(networking, near),
  ),
];
