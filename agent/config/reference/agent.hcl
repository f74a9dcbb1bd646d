# What the reference page shows as the example of each setting. It is read and checked
# by tests, and no agent is started with it: settings that exclude each other stand
# side by side.
name            = "gpu-01"
data_dir        = "/var/lib/nomadlike"
plugin_dir      = "/opt/nomadlike/plugins"
bind            = "10.0.0.11"
advertise       = "10.0.0.11"
join_token      = "nl1.…@10.0.0.1:4646"
join_token_file = "/etc/nomadlike/join"
scale           = 2

ports {
  http   = 4646
  gossip = 4648
}

server {
  enabled          = true
  bootstrap_expect = 3
  join             = ["10.0.0.1", "10.0.0.2:4648"]
  renew_grace      = "60d"
  forget_nodes     = "14d"
  keep_jobs        = 50000
  keep_jobs_for    = "365d"
  jobs_size_max    = "512MiB"

  backup {
    path     = "/nas/backups"
    interval = "30m"
    keep     = 96
  }

  audit {
    keep     = "730d"
    max_size = "4GiB"
    file     = "/var/log/nomadlike/audit.jsonl"

    syslog {
      address = "logs.example.org:6514"
      tls     = true
      ca      = "/etc/nomadlike/syslog-ca.pem"
    }
  }
  history {
    keep     = "3650d"
    max_size = "20GiB"
  }

  notify {
    url   = "https://cluster.example.org:4646"
    allow = ["oapi.dingtalk.com", "hooks.example.org:8443", "*.chat.example.org"]

    smtp {
      address       = "mail.example.org:587"
      tls           = "starttls"
      ca            = "/etc/nomadlike/mail-ca.pem"
      user          = "cluster"
      password_file = "/etc/nomadlike/mail-password"
      from          = "cluster@example.org"
    }
  }

  sign_in {
    ldap "company" {
      caption            = "Company directory"
      kind               = "active_directory"
      servers            = ["ldaps://dc1.corp.example", "ldaps://dc2.corp.example"]
      start_tls          = true
      insecure           = false
      ca_file            = "/etc/nomadlike/corp-ca.pem"
      timeout            = "5s"
      bind_dn            = "cn=nomadlike,ou=services,dc=corp,dc=example"
      bind_password_file = "/etc/nomadlike/ldap-password"

      users {
        dn           = "uid={name},ou=people,dc=corp,dc=example"
        base         = "ou=people,dc=corp,dc=example"
        filter       = "(&(objectClass=user)(|(sAMAccountName={name})(userPrincipalName={name})))"
        subject      = "objectGUID"
        name         = "sAMAccountName"
        display_name = "displayName"
        email        = "mail"
      }

      groups {
        base      = "ou=groups,dc=corp,dc=example"
        filter    = "(member={dn})"
        attribute = "memberOf"
        nested    = true
      }

      grant "cn=ml-team,ou=groups,dc=corp,dc=example" {
        project = "vision"
        role    = "user"
      }

      grant "cn=cluster,ou=groups,dc=corp,dc=example" {
        cluster_role = "operator"
      }
    }

    oidc "platform" {
      caption            = "Company account"
      issuer             = "https://login.example.org/realms/main"
      client_id          = "nomadlike"
      client_secret_file = "/etc/nomadlike/platform-secret"
      scopes             = ["profile", "email", "groups"]
      name_claim         = "preferred_username"
      groups_claim       = "groups"
      ca_file            = "/etc/nomadlike/platform-ca.pem"
      end_session        = true

      grant "ml-team" {
        project = "vision"
        role    = "user"
      }

      grant "platform-admins" {
        cluster_role = "admin"
      }
    }
  }
}

client {
  enabled          = true
  servers          = ["10.0.0.1", "10.0.0.2:4646"]
  pool             = "a800"
  interface        = "ib0"
  port_min         = 21000
  port_max         = 24999
  meta             = { room = "1" }
  topology         = ["room-1", "rack-07", "leaf-3"]
  rdma             = true
  nccl_debug       = "WARN"
  env_file         = "/etc/nomadlike/cann.env"
  guard_rendezvous = false

  reserved {
    cpu    = 2
    memory = "8GiB"
  }

  device "example/npu" {
    count          = 2
    ids            = ["npu-a", "npu-b"]
    model          = "X100"
    memory         = "64GiB"
    numa           = 1
    link_group     = "0"
    driver_version = "1.2.3"
    attrs          = { firmware = "7" }
    env            = { NPU_VISIBLE = "{index}" }
  }

  docker {
    enabled         = true
    endpoint        = "unix:///run/docker.sock"
    host_network    = false
    mount_roots     = ["/nas"]
    options         = ["ipc"]
    registries_only = ["registry.example.com"]
    auth_file       = "/etc/nomadlike/docker.json"
    user            = "1000:1000"

    image_gc {
      enabled    = true
      keep_for   = "6h"
      unused_max = "30d"
      disk_high  = 80
      disk_low   = 60
      pinned     = ["registry.example.com/base:1"]
    }
  }

  exec {
    isolation   = "required"
    view        = "private"
    root        = "/srv/image"
    mount_roots = ["/nas"]
    writable    = ["/scratch"]
    cgroups     = true
    pids_max    = 65536
    ulimits     = { nofile = "65536:1048576" }
    ulimits_max = { memlock = "unlimited" }
    users       = { ada = "ada" }
    projects    = { vision = "vision" }
    uid_min     = 200000
    uid_max     = 260000
  }

  storage "nas" {
    path      = "/nas/{kind}/{project}"
    serves    = ["dataset", "output"]
    read_only = false
  }

  storage "mirror" {
    http {
      url                = "https://data.example.com/{kind}"
      list               = "SHA256SUMS"
      ca_file            = "/etc/nomadlike/ca.pem"
      redirect_hosts     = ["cdn.example.com"]
      authorization_file = "/etc/nomadlike/authorization"
      size_max           = "2TiB"
    }
  }

  storage "minio" {
    s3 {
      url              = "https://minio.example.com"
      bucket           = "datasets"
      prefix           = "{project}"
      region           = "eu-west-1"
      path_style       = true
      credentials_file = "/etc/nomadlike/s3"
      profile          = "default"
      list             = "SHA256SUMS"
      ca_file          = "/etc/nomadlike/ca.pem"
      size_max         = "2TiB"
    }
  }

  data {
    path       = "/nvme/copies"
    retention  = "14d"
    free_min   = 0.2
    share      = false
    share_rate = "500MiB"
  }

  disk {
    space_min   = "20GiB"
    space_back  = "40GiB"
    inodes_min  = 100000
    inodes_back = 200000
  }

  task {
    disk_max  = "200GiB"
    files_max = 1000000
    logs_max  = "5GiB"
  }
}

log {
  level  = "info"
  format = "json"
}

limits {
  connections_peer  = 2048
  streams           = 2000
  requests_per_sec  = 10000
  token_failures    = 10
  submissions_per_s = 500
}

http {
  hosts       = ["nomadlike.example.org"]
  task_domain = "tasks.nomadlike.example.org"
}

plugin "nvidia" {
  type    = "device"
  args    = ["-verbose"]
  env     = { LD_LIBRARY_PATH = "/opt/lib" }
  sha256  = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  enabled = true
  config  = { poll = "10s" }
}
