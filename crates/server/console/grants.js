// Grants of tokens, independent of the page.

/** Returns whether one of the grants, such as `admin,mint *`, has the right to administer all of a namespace. */
export const administers = (grants, namespace) =>
  grants.some((grant) => {
    const [rights, pattern] = grant.trim().split(/\s+/);
    return rights.split(",").includes("admin") && ["*", "*/*", `${namespace}/*`].includes(pattern);
  });
