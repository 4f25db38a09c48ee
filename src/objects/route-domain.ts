/**
 * The domain of hosts that Routes are given, where no other is configured (openshift-apiserver
 * `route/apiserver/simplerouteallocation`).
 */
export const routeDomain = 'router.default.svc.cluster.local';
